/* onetap for C: runs frozen networks (.tap files). Every program that can call C can call this.
 *
 *   onetap_session* session = NULL;
 *   if (onetap_open("model.tap", NULL, &session) != ONETAP_OK) {
 *     fprintf(stderr, "%s\n", onetap_last_error());
 *     return 1;
 *   }
 *   ...
 *   onetap_run(session, image, 1, outputs);
 *   onetap_close(session);
 *
 * A session belongs to one caller at a time; several sessions may run at once. Nothing here prints, exits or throws.
 * docs/runtime.md has the rest. Names and meanings below stay as they are; new ones may come. */
#ifndef ONETAP_ONETAP_H
#define ONETAP_ONETAP_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define ONETAP_API __attribute__((visibility("default")))
#else
#define ONETAP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return: the exit codes of the command. onetap_last_error() says more. */
enum {
  ONETAP_OK = 0,
  ONETAP_FAILURE = 1, /* the machine failed: out of memory, no more threads */
  ONETAP_USAGE = 2,   /* an invalid request: NULL, an unknown target */
  ONETAP_CHECK = 3,   /* a requested check failed */
  ONETAP_DATA = 4     /* a file is missing or damaged */
};

/* A frozen network prepared for this machine, with the threads and the memory to run it. */
typedef struct onetap_session onetap_session;

/* Zeros mean defaults, so that a program compiled against an older onetap.h still works. */
typedef struct onetap_options {
  size_t size;        /* sizeof(onetap_options): tells the library which fields there are */
  const char* target; /* kernels: "avx512", "avx2", "sse4", "neon", "plain"; of int8 networks also "avx512vnni",
                         "avxvnni" and "neondot"; NULL: ONETAP_TARGET, or the best here */
  int32_t threads;    /* 1 to 1024; 0: all CPUs that this process may use */
  int32_t batch;      /* images that one call usually has: more than 1 sets memory aside for one image per thread */
  int32_t tune;       /* not 0: time alternatives for every layer; results are kept in the user's cache folder */
  int32_t reserved;   /* 0 */
  /* Bytes that the session may take, with its model and one image: onetap_open refuses a network that needs more.
   * 0: those of ONETAP_MEMORY (such as 512M or 2G), or 1 GiB. */
  int64_t memory_limit;
} onetap_options;

/* onetap_options options = ONETAP_OPTIONS_INIT; */
#define ONETAP_OPTIONS_INIT \
  { sizeof(onetap_options), NULL, 0, 0, 0, 0, 0 }

/* "0.2.0" */
ONETAP_API const char* onetap_version(void);

/* Why the last call that failed on this thread did so, in one line; "" if none has. Never NULL. Valid until the next
 * call that fails on this thread. */
ONETAP_API const char* onetap_last_error(void);

/* Reads a .tap file. `options` may be NULL. *session is set to NULL if this fails. */
ONETAP_API int onetap_open(const char* path, const onetap_options* options, onetap_session** session);

/* NULL is fine. */
ONETAP_API void onetap_close(onetap_session* session);

/* Channels, rows and columns of the image that the network takes; {N, 1, 1} for one that takes a vector of N. */
ONETAP_API int onetap_input_shape(const onetap_session* session, int64_t shape[3]);

/* Number of outputs for one image, in floats: the classes of a classifier. */
ONETAP_API int onetap_output_count(const onetap_session* session, int64_t* count);

/* Channels, rows and columns of the outputs; {N, 1, 1} for a vector of N, as of a classifier. */
ONETAP_API int onetap_output_shape(const onetap_session* session, int64_t shape[3]);

/* Name of the class of an output; NULL if the file does not say, or if there is no such output. Valid until the session
 * is closed. */
ONETAP_API const char* onetap_class_name(const onetap_session* session, int64_t index);

/* The input of the network is (value / 255 - mean) / sd of a pixel, with the mean and sd of red, green and blue. */
ONETAP_API int onetap_pixel_scale(const onetap_session* session, float mean[3], float sd[3]);

/* `images`: count images without gaps, each channels x rows x columns floats, a whole channel after the other;
 * `outputs`: room for count x onetap_output_count floats. Allocates nothing; the result does not depend on threads or
 * count. The two must not overlap. */
ONETAP_API int onetap_run(onetap_session* session, const float* images, int64_t count, float* outputs);

/* The same with pixels, bytes of 0 to 255, in place of floats. The input is (value / 255 - mean) / sd as in
 * onetap_pixel_scale, computed in doubles and rounded to a float. An int8 network reads the bytes without converting
 * them to floats; the first call on a network of floats allocates memory for an image per thread. */
ONETAP_API int onetap_run_u8(onetap_session* session, const uint8_t* images, int64_t count, float* outputs);

/* Type of the numbers that the network computes with: "f32" or "int8". NULL without a session. */
ONETAP_API const char* onetap_number_type(const onetap_session* session);

#ifdef __cplusplus
}
#endif

#endif
