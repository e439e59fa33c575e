#include <onetap/onetap.h>
#include <stdio.h>

int main(int argc, char** argv) {
  onetap_session* session = NULL;
  int64_t count = 0;
  if (argc != 2 || onetap_open(argv[1], NULL, &session) != ONETAP_OK) {
    fprintf(stderr, "%s\n", onetap_last_error());
    return 1;
  }
  onetap_output_count(session, &count);
  printf("%s %s %d\n", onetap_version(), onetap_class_name(session, 0), (int)count);
  onetap_close(session);
  return count == 10 ? 0 : 1;
}
