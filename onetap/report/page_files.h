// The parts of the report page in report/page/, embedded by the build (onetap_embed).
#pragma once

#include <string_view>

namespace onetap::page_files {

std::string_view page_html();
std::string_view style_css();
std::string_view dom_js();
std::string_view charts_js();
std::string_view sections_js();
std::string_view report_js();

}  // namespace onetap::page_files
