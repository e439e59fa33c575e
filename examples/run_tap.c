/* Runs a frozen network from C: run_tap MODEL.tap [IMAGE.ppm]. Without an image it makes one of random pixels.
 *
 *   cc run_tap.c $(pkg-config --cflags --libs onetap) -lm -o run_tap
 *
 * Expected output: the five classes that the network finds most probable, best first. */
#include <math.h>
#include <onetap/onetap.h>
#include <stdio.h>
#include <stdlib.h>

enum { kTop = 5 };

typedef struct {
  long width, height;
  unsigned char* rgb; /* red, green and blue of one pixel after the other */
} Picture;

/* A binary PPM (P6) of 8 bits without comments; 0 if it is not one. */
static int read_ppm(const char* path, Picture* picture) {
  FILE* file = fopen(path, "rb");
  long largest = 0;
  int ok = file != NULL && fscanf(file, "P6 %ld %ld %ld", &picture->width, &picture->height, &largest) == 3 &&
           fgetc(file) != EOF && largest == 255 && picture->width > 0 && picture->width <= 10000 &&
           picture->height > 0 && picture->height <= 10000;
  if (ok) {
    const size_t bytes = 3 * (size_t)picture->width * (size_t)picture->height;
    picture->rgb = malloc(bytes);
    ok = picture->rgb != NULL && fread(picture->rgb, 1, bytes, file) == bytes;
  }
  if (file != NULL) fclose(file);
  return ok;
}

static int random_picture(long width, long height, Picture* picture) {
  const size_t bytes = 3 * (size_t)width * (size_t)height;
  picture->width = width;
  picture->height = height;
  picture->rgb = malloc(bytes);
  for (size_t i = 0; picture->rgb != NULL && i < bytes; ++i) picture->rgb[i] = (unsigned char)(rand() >> 7);
  return picture->rgb != NULL;
}

/* The network's input: a plane per colour, pixels scaled; the nearest pixel where sizes differ. */
static void to_planes(const Picture* picture, const int64_t shape[3], const float mean[3], const float sd[3],
                      float* planes) {
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < shape[1]; ++y) {
      for (int64_t x = 0; x < shape[2]; ++x) {
        const int64_t from_y = y * picture->height / shape[1], from_x = x * picture->width / shape[2];
        const float value = picture->rgb[(from_y * picture->width + from_x) * 3 + c];
        *planes++ = (value / 255.0f - mean[c]) / sd[c];
      }
    }
  }
}

static void print_top(const onetap_session* session, float* outputs, int64_t count) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i) sum += exp(outputs[i]);
  for (int place = 0; place < kTop && place < count; ++place) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; ++i) {
      if (outputs[i] > outputs[best]) best = i;
    }
    const char* name = onetap_class_name(session, best);
    printf("%3d  %-20s %6.2f %%\n", (int)best, name != NULL ? name : "", 100.0 * exp(outputs[best]) / sum);
    outputs[best] = -INFINITY;
  }
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: run_tap MODEL.tap [IMAGE.ppm]\n");
    return ONETAP_USAGE;
  }
  onetap_options options = ONETAP_OPTIONS_INIT;
  options.threads = 1;
  onetap_session* session = NULL;
  int code = onetap_open(argv[1], &options, &session);
  if (code != ONETAP_OK) {
    fprintf(stderr, "%s\n", onetap_last_error());
    return code;
  }

  int64_t shape[3], count;
  float mean[3], sd[3];
  onetap_input_shape(session, shape);
  onetap_output_count(session, &count);
  onetap_pixel_scale(session, mean, sd);

  Picture picture = {0, 0, NULL};
  float* image = malloc(sizeof(float) * (size_t)(shape[0] * shape[1] * shape[2]));
  float* outputs = malloc(sizeof(float) * (size_t)count);
  code = ONETAP_DATA;
  if (shape[0] != 3) {
    fprintf(stderr, "expected a network for colour images\n");
  } else if (argc == 3 ? !read_ppm(argv[2], &picture) : !random_picture(shape[2], shape[1], &picture)) {
    fprintf(stderr, "expected a binary PPM image of 8 bits\n");
  } else if (image != NULL && outputs != NULL) {
    to_planes(&picture, shape, mean, sd, image);
    code = onetap_run(session, image, 1, outputs);
    if (code == ONETAP_OK) print_top(session, outputs, count);
  }
  free(picture.rgb);
  free(image);
  free(outputs);
  onetap_close(session);
  return code;
}
