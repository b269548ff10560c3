// P4SGD's engine and the loss, as kernels (docs/explanation/: rtl-glm.md; numbers: glm.md).
#pragma once

#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_stream.h>

#include "../wire/generated/glm_numbers.hpp"

namespace catchment::hls_model {

using Word = ap_uint<glm::kBanks * glm::kChunk>;  // bit 64 k + i: bank k, feature i
using Weight = ap_int<glm::kWeightBits>;
using Scale = ap_int<glm::kScaleBits>;
using Gradient = ap_int<glm::kGradientBits>;
using Accumulator = ap_int<glm::kAccumulatorBits>;
using Activation = ap_int<32>;

// A micro-batch's planes against the engine's weights; `sums` of each bank.  The planes go on to
// `replay`.
void glm_forward(hls::stream<Word>& words, hls::stream<Word>& replay,
                 const Weight weights[glm::kEngineWeights], ap_uint<5> bits, ap_uint<13> chunks,
                 Accumulator sums[glm::kBanks]);

// A worker's partial activation from the sum of its engines, rounded and cut.
Activation glm_activation(Accumulator sum, ap_uint<5> shift);

// The loss's derivative times the step's multiplier.
Scale glm_scale(Activation activation, Activation label, glm::Loss loss,
                ap_uint<glm::kMultiplierBits> multiplier);

// The planes again: gradients of a mini-batch are begun in its first micro-batch, and taken from
// the weights in its last.
void glm_backward(hls::stream<Word>& replay, const Scale scales[glm::kBanks],
                  Gradient gradients[glm::kEngineWeights], Weight weights[glm::kEngineWeights],
                  ap_uint<5> bits, ap_uint<13> chunks, bool first, bool last, ap_uint<6> shift);

}  // namespace catchment::hls_model
