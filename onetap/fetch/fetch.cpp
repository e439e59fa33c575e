#include "onetap/fetch/fetch.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/sha256.h"
#include "onetap/base/text.h"
#include "onetap/data/cifar.h"
#include "onetap/fetch/download.h"

#include <system_error>

namespace fs = std::filesystem;

namespace onetap {
namespace {

struct Official {
  Cifar kind;
  const char* url;
  const char* sha256;
};

constexpr Official kOfficial[] = {
    {Cifar::k10, "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
     "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"},
    {Cifar::k100, "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
     "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"},
};

const Official& find_official(const std::string& name) {
  for (const Official& official : kOfficial) {
    if (name == cifar_layout(official.kind).name) return official;
  }
  fail_usage("[fetch] expected {}, got '{}'{}", join(fetchable_datasets(), " or "), name,
             did_you_mean(name, fetchable_datasets()));
}

std::vector<std::string> member_names(const CifarLayout& layout) {
  std::vector<std::string> names;
  for (const CifarFile& file : layout.train) names.emplace_back(file.name);
  names.emplace_back(layout.test.name);
  names.emplace_back(layout.class_names);
  return names;
}

}  // namespace

std::vector<std::string> fetchable_datasets() {
  std::vector<std::string> names;
  for (const Official& official : kOfficial) names.emplace_back(cifar_layout(official.kind).name);
  return names;
}

fs::path fetch_dataset(const FetchOptions& options, const FetchEvents& events) {
  const Official& official = find_official(options.name);
  const CifarLayout& layout = cifar_layout(official.kind);
  const std::string url = options.url.empty() ? official.url : options.url;
  const std::string expected = options.sha256.empty() ? official.sha256 : options.sha256;
  const auto notice = [&](const std::string& text) {
    if (events.notice) events.notice(text);
  };

  make_directories(options.directory);
  fs::path folder = options.directory / layout.folder;
  if (fs::exists(folder)) {
    open_cifar(official.kind, options.directory);  // throws unless every file is as it should be
    notice(fmt::format("{} is complete already", folder.string()));
    return folder;
  }
  const DirectoryLock lock(options.directory);
  StagedDirectory::clean(options.directory);

  const fs::path archive = options.directory / (std::string(layout.folder) + ".tar.gz.part");
  std::error_code ignored;
  const bool resumed = fs::exists(archive, ignored);
  download(url, archive, options.attempts, events);
  std::string found = sha256_file(archive);
  if (found != expected && resumed) {
    notice("the earlier part of the download does not match; starting again");
    fs::remove(archive, ignored);
    download(url, archive, options.attempts, events);
    found = sha256_file(archive);
  }
  if (found != expected) {
    fs::remove(archive, ignored);
    fail_data("[fetch] expected SHA-256 {}, got {} ({}); the download is removed", expected, found, url);
  }
  notice("checksum matches; unpacking");
  StagedDirectory staged(folder);
  unpack_members(archive, member_names(layout), staged.path());
  open_cifar(official.kind, staged.path());
  staged.commit();
  if (options.keep_archive) {
    fs::rename(archive, options.directory / (std::string(layout.folder) + ".tar.gz"), ignored);
  } else {
    fs::remove(archive, ignored);
  }
  return folder;
}

}  // namespace onetap
