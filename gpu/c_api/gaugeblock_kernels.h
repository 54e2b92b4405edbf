/* The CUDA kernels for other programs: plain C, device pointers, a stream.
 *
 * Every function looks at sizes, strides and addresses on the host, and at values only on the device. A launch
 * allocates nothing, waits for nothing and copies nothing to or from the host, so that it can be captured into a
 * graph. The caller gives the workspace, whose size depends on sizes and strides alone.
 *
 * The kernel is the fastest one that takes the problem ("auto") when `variant` is NULL, or the one that it names;
 * `gaugeblock list` shows the names, `gaugeblock list --explain` the choice. */
#ifndef GAUGEBLOCK_KERNELS_H
#define GAUGEBLOCK_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gaugeblock_status {
  GAUGEBLOCK_OK = 0,
  GAUGEBLOCK_BAD_INPUT = 2,     /* sizes, pointers, a name, or a workspace that is too small */
  GAUGEBLOCK_DEVICE_FAILED = 3, /* CUDA refused a launch, or an error from before showed */
  GAUGEBLOCK_UNSUPPORTED = 4    /* the variant, or every variant, declines the problem */
} gaugeblock_status;

/* Why this thread's last call did not return GAUGEBLOCK_OK, in one line; for a choice, why this one. */
const char* gaugeblock_message(void);

/* S_t = gate_t S_{t-1} + beta_t k_t v_t^T,   y_t = q_t^T S_t.   float32; strides in elements, 0 allowed for inputs. */
typedef struct gaugeblock_recurrence {
  int64_t batches, steps, heads, key_size, value_size; /* B, T, H, K, V */
  const float* q;                                      /* [B,T,H,K] */
  const float* k;                                      /* [B,T,H,K] */
  const float* v;                                      /* [B,T,H,V] */
  const float* gate;                                   /* [B,T,H] */
  const float* beta;                                   /* [B,T,H] */
  const float* initial_state;                          /* [B,H,K,V]; NULL: zero */
  float* y;                                            /* [B,T,H,V] */
  float* final_state;                                  /* [B,H,K,V] */
  int64_t q_stride[4], k_stride[4], v_stride[4], gate_stride[3], beta_stride[3], initial_state_stride[4],
      y_stride[4], final_state_stride[4];
} gaugeblock_recurrence;

/* The variant that `auto` takes. */
gaugeblock_status gaugeblock_recurrence_variant(const gaugeblock_recurrence* problem, const char** variant);
/* Bytes of device memory, aligned to 256, that a launch needs; may be 0. */
gaugeblock_status gaugeblock_recurrence_workspace(const gaugeblock_recurrence* problem, const char* variant,
                                                  size_t* bytes);
/* Computes y and final_state on the stream (a cudaStream_t). */
gaugeblock_status gaugeblock_recurrence_launch(const gaugeblock_recurrence* problem, const char* variant,
                                               void* workspace, size_t workspace_bytes, void* stream);

/* Parameters of one pass, contiguous, as PyTorch stores them. */
typedef struct gaugeblock_axial_pass {
  const float* norm_weight; /* [D] */
  const float* norm_bias;   /* [D] */
  const float* qkv_weight;  /* [3D,D], rows in the order Q, K, V */
  const float* out_weight;  /* [D,D] */
  const float* out_bias;    /* [D] */
} gaugeblock_axial_pass;

typedef enum gaugeblock_passes {
  GAUGEBLOCK_BOTH = 0,
  GAUGEBLOCK_ROW = 1,
  GAUGEBLOCK_COL = 2
} gaugeblock_passes;

/* LayerNorm, attention, projection and residual along rows, then along columns. */
typedef struct gaugeblock_axial {
  int64_t batches, height, width, channels, heads; /* B, H, W, D */
  float eps;
  gaugeblock_passes passes;
  const float* x; /* [B,H,W,D] */
  float* y;       /* [B,H,W,D] */
  int64_t x_stride[4], y_stride[4];
  gaugeblock_axial_pass row, col;
} gaugeblock_axial;

gaugeblock_status gaugeblock_axial_variant(const gaugeblock_axial* problem, const char** variant);
gaugeblock_status gaugeblock_axial_workspace(const gaugeblock_axial* problem, const char* variant,
                                             size_t* bytes);
/* Lays the parameters out in the workspace. Needed before the first launch with it, and again when a parameter has
 * changed; what a launch does leaves it in place. */
gaugeblock_status gaugeblock_axial_prepare(const gaugeblock_axial* problem, const char* variant,
                                           void* workspace, size_t workspace_bytes, void* stream);
gaugeblock_status gaugeblock_axial_launch(const gaugeblock_axial* problem, const char* variant,
                                          void* workspace, size_t workspace_bytes, void* stream);

#ifdef __cplusplus
}
#endif
#endif
