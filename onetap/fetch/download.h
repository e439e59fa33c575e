// One file over HTTP(S), resumed from what is already on the disk.
#pragma once

#include "onetap/fetch/fetch.h"

namespace onetap {

// Appends to `part` until the server says it is whole. A server that cannot resume starts from zero.
void download(const std::string& url, const std::filesystem::path& part, int attempts, const FetchEvents& events);

// Writes the named members of a .tar.gz into `directory`, whatever folder they lie in inside the archive.
// kData if one is missing or the archive is damaged.
void unpack_members(const std::filesystem::path& archive, const std::vector<std::string>& members,
                    const std::filesystem::path& directory);

}  // namespace onetap
