// SPDX-License-Identifier: GPL-2.0-or-later
/// The functions of libfmt.so, compiled into our programs: Debian has no libfmt.a, and a shared
/// one loads the C++ library, whose symbols cost a start of the tool more than its work. To
/// have it in every file, as FMT_HEADER_ONLY does, takes two more seconds to compile each.
#include <fmt/format-inl.h>

// Those that fmt/format.h leaves to its library.
template auto fmt::detail::dragonbox::to_decimal(float x) noexcept -> decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal(double x) noexcept -> decimal_fp<double>;
template fmt::detail::locale_ref::locale_ref(const std::locale &locale);
template auto fmt::detail::locale_ref::get<std::locale>() const -> std::locale;
template auto fmt::detail::thousands_sep_impl(locale_ref locale) -> thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl(locale_ref locale) -> char;
template void fmt::detail::buffer<char>::append(const char *begin, const char *end);
template void fmt::detail::vformat_to(buffer<char> &to, string_view format,
                                      basic_format_args<fmt::buffer_context<char>> arguments,
                                      locale_ref locale);
