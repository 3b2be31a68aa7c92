// SPDX-License-Identifier: GPL-2.0-or-later
#include "tool/report/png.h"

#include <memory>

#include "lib/error.h"
#include "lib/host/library.h"

// As librsvg, cairo and GObject have had them for ten years. Their headers are those of half of
// a desktop, for a handful of functions.
extern "C" {

struct RsvgHandle;
struct GError;
struct cairo_surface_t;
struct cairo_t;

struct RsvgRectangle {
    double x;
    double y;
    double width;
    double height;
};

using NewFromData = RsvgHandle *(const unsigned char *data, unsigned long size, GError **error);
using IntrinsicSize = int(RsvgHandle *handle, double *width, double *height);
using RenderDocument = int(RsvgHandle *handle, cairo_t *cairo, const RsvgRectangle *place,
                           GError **error);
using Unref = void(void *object);
using CreateSurface = cairo_surface_t *(int format, int width, int height);
using Create = cairo_t *(cairo_surface_t *surface);
using Destroy = void(cairo_t *cairo);
using DestroySurface = void(cairo_surface_t *surface);
using Write = int (*)(void *closure, const unsigned char *data, unsigned int size);
using WritePng = int(cairo_surface_t *surface, Write write, void *closure);
}

namespace umacct::tool {

namespace {

constexpr const char *without = "a PNG can't be drawn";
constexpr int argb32 = 0; ///< CAIRO_FORMAT_ARGB32

struct Rsvg {
    Library rsvg{"librsvg-2.so.2", without};
    Library cairo{"libcairo.so.2", without};
    Library gobject{"libgobject-2.0.so.0", without};
    NewFromData *new_from_data = rsvg.find("rsvg_handle_new_from_data");
    IntrinsicSize *size = rsvg.find("rsvg_handle_get_intrinsic_size_in_pixels");
    RenderDocument *render = rsvg.find("rsvg_handle_render_document");
    Unref *unref = gobject.find("g_object_unref");
    CreateSurface *create_surface = cairo.find("cairo_image_surface_create");
    DestroySurface *destroy_surface = cairo.find("cairo_surface_destroy");
    Create *create = cairo.find("cairo_create");
    Destroy *destroy = cairo.find("cairo_destroy");
    WritePng *write_png = cairo.find("cairo_surface_write_to_png_stream");
};

int append(void *closure, const unsigned char *data, unsigned int size) {
    static_cast<std::string *>(closure)->append(reinterpret_cast<const char *>(data), size);
    return 0;
}

} // namespace

std::string png_of(const std::string &svg, double scale) {
    const Rsvg lib;
    // The error's text is GLib's, whose own function frees it; what is drawn is ours, and well.
    const std::unique_ptr<RsvgHandle, Unref *> handle(
        lib.new_from_data(reinterpret_cast<const unsigned char *>(svg.data()), svg.size(), nullptr),
        lib.unref);
    RsvgRectangle place{};
    std::string png;

    if (!handle || lib.size(handle.get(), &place.width, &place.height) == 0)
        throw Error(Failure::failed, fmt::format("{}: librsvg can't read it", without));
    place.width *= scale;
    place.height *= scale;
    const std::unique_ptr<cairo_surface_t, DestroySurface *> surface(
        lib.create_surface(argb32, static_cast<int>(place.width), static_cast<int>(place.height)),
        lib.destroy_surface);
    const std::unique_ptr<cairo_t, Destroy *> cairo(lib.create(surface.get()), lib.destroy);
    if (lib.render(handle.get(), cairo.get(), &place, nullptr) == 0 ||
        lib.write_png(surface.get(), append, &png) != 0)
        throw Error(Failure::failed, fmt::format("{}: librsvg can't draw it", without));
    return png;
}

} // namespace umacct::tool
