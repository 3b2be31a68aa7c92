// SPDX-License-Identifier: GPL-2.0-or-later
/// A picture in pixels, by librsvg, which is loaded when it is needed.
#pragma once

#include <string>

namespace umacct::tool {

/// The picture as a PNG file, on that many times as many pixels. Throws Error (failed) where
/// librsvg isn't there or can't draw it.
std::string png_of(const std::string &svg, double scale);

} // namespace umacct::tool
