#include "tools/onetap/plain_page.h"
#include "tools/onetap/reproduce_results.h"

#include <fmt/format.h>

namespace onetap::tool {
std::string results_page(const ExperimentResults& results, const std::string& figure, bool links_runs) {
  const Experiment& experiment = results.experiment();
  std::string page = page_start(experiment.title, "onetap reproduce " + experiment.name);
  for (const auto& [data, table] : results.tables()) page += page_section(data, page_table(table));
  page += page_section("Figure", page_figure(figure));
  page += page_section("Notes", page_list(results.remarks()));
  page += "<section><h2>Files</h2>\n<ul>\n";
  for (const char* file : {"results.md", "results.csv", "results.json", "figure.svg"}) {
    page += fmt::format("<li>{}</li>\n", page_link(file, file));
  }
  if (links_runs)
    page += fmt::format("<li>{}: curves, heat maps and counts of all runs</li>\n", page_link("runs.html", "runs.html"));
  for (const RowResult& row : results.rows()) {
    for (const RunPlace& run : row.runs)
      page += fmt::format("<li>{}</li>\n", page_link("../runs/" + run.name + "/", run.name));
  }
  return page + "</ul></section>\n" + page_end();
}

}  // namespace onetap::tool
