// A page of tables and figures in plain HTML: no script, and nothing is loaded from elsewhere.
#pragma once

#include "tools/onetap/table.h"

#include <string>
#include <vector>

namespace onetap::tool {

// Everything up to the first section: head, style, title and the command that made the page.
std::string page_start(const std::string& title, const std::string& command);
std::string page_section(const std::string& title, const std::string& html);
std::string page_end();

// What a section holds. Texts are escaped; tables and pictures are ours.
std::string page_table(const Table& table);
std::string page_figure(const std::string& svg);
std::string page_list(const std::vector<std::string>& texts);
std::string page_link(const std::string& target, const std::string& text);

}  // namespace onetap::tool
