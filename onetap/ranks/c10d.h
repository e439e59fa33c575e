// LibTorch's c10d, and what differs between 1.13 and 2.x. Slow to read, so included by one source alone.
#pragma once

#include "onetap/nn/torch.h"

// Some packages of LibTorch define these themselves.
#if defined(ONETAP_HAVE_GLOO) && !defined(USE_C10D_GLOO)
#define USE_C10D_GLOO
#endif
#if defined(ONETAP_HAVE_NCCL) && !defined(USE_C10D_NCCL)
#define USE_C10D_NCCL
#endif

#if defined(ONETAP_HAVE_GLOO) || defined(ONETAP_HAVE_NCCL)
#define ONETAP_HAVE_RANKS

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#ifdef ONETAP_HAVE_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#endif
#ifdef ONETAP_HAVE_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

namespace onetap {

#if ONETAP_TORCH_AT_LEAST(2, 0)
using CollectiveBackend = c10d::Backend;
using CollectiveWork = c10d::Work;
#else
using CollectiveBackend = c10d::ProcessGroup;
using CollectiveWork = c10d::Work;
#endif

}  // namespace onetap
#endif
