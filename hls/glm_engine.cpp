#include "glm_engine.hpp"

namespace catchment::hls_model {

namespace {

// value / 2**shift, to the nearest, halves to even: as many fraction bits as the largest shift
// moves out of the value.
template <int kWidth, int kMostShift>
ap_int<kWidth + 1> rounded(ap_int<kWidth> value, ap_uint<6> shift) {
  ap_fixed<kWidth + kMostShift, kWidth> exact = value;
  exact >>= shift.to_int();
  const ap_fixed<kWidth + 1, kWidth + 1, AP_RND_CONV, AP_WRAP> whole = exact;
  return ap_int<kWidth + 1>(whole);
}

// Cut to the ends, which are as far from zero on both sides.
template <int kBits, int kWidth>
ap_int<kBits> cut(ap_int<kWidth> value) {
  const ap_fixed<kWidth, kWidth> exact = value;
  const ap_fixed<kBits, kBits, AP_TRN, AP_SAT_SYM> ends = exact;
  return ap_int<kBits>(ends);
}

}  // namespace

void glm_forward(hls::stream<Word>& words, hls::stream<Word>& replay,
                 const Weight weights[glm::kEngineWeights], ap_uint<5> bits, ap_uint<13> chunks,
                 Accumulator sums[glm::kBanks]) {
#pragma HLS ARRAY_RESHAPE variable = weights type = cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = sums type = complete
clear:
  for (int k = 0; k < glm::kBanks; ++k) {
#pragma HLS UNROLL
    sums[k] = 0;
  }
each_chunk:
  for (int chunk = 0; chunk < chunks; ++chunk) {
    ap_int<54> planes[glm::kBanks];
  begin_chunk:
    for (int k = 0; k < glm::kBanks; ++k) {
#pragma HLS UNROLL
      planes[k] = 0;
    }
  each_plane:
    for (int plane = 0; plane < bits; ++plane) {
#pragma HLS PIPELINE II = 1
      const Word word = words.read();
      replay.write(word);
    each_bank:
      for (int k = 0; k < glm::kBanks; ++k) {
#pragma HLS UNROLL
        ap_int<38> sum = 0;
      each_lane:
        for (int i = 0; i < glm::kChunk; ++i) {
#pragma HLS UNROLL
          if (word[glm::kChunk * k + i] == 1) sum += weights[glm::kChunk * chunk + i];
        }
        planes[k] = (planes[k] << 1) + sum;
      }
    }
  add:
    for (int k = 0; k < glm::kBanks; ++k) {
#pragma HLS UNROLL
      sums[k] += planes[k];
    }
  }
}

Activation glm_activation(Accumulator sum, ap_uint<5> shift) {
#pragma HLS PIPELINE II = 1
  return cut<glm::kActivationBits>(rounded<glm::kAccumulatorBits, 32>(sum, shift));
}

Scale glm_scale(Activation activation, Activation label, glm::Loss loss,
                ap_uint<glm::kMultiplierBits> multiplier) {
#pragma HLS PIPELINE II = 1
  const ap_int<33> z = activation;
  const bool positive = label > 0;
  ap_int<34> derivative = 0;
  if (loss == glm::Loss::kSquares) {
    derivative = z - label;
  } else if (loss == glm::Loss::kLogistic) {
    const ap_uint<32> magnitude = z < 0 ? ap_int<33>(-z) : z;
    ap_int<20> value = glm::kSigmoidOne;
    const ap_uint<20> segment = magnitude >> glm::kSigmoidFraction;
    if (segment < glm::kSigmoidSegments) {
      const glm::Segment line = glm::kSigmoid[segment.to_int()];
      const ap_uint<glm::kSigmoidFraction> place = magnitude;
      value = line.value + ((line.rise * place.to_int() + (1 << (glm::kSigmoidFraction - 1))) >>
                            glm::kSigmoidFraction);
    }
    if (z < 0) value = glm::kSigmoidOne - value;
    derivative = value - (positive ? glm::kSigmoidOne : 0);
  } else if (positive ? z < glm::kSigmoidOne : z > -glm::kSigmoidOne) {
    derivative = positive ? -glm::kSigmoidOne : glm::kSigmoidOne;
  }
  const ap_int<37> exact = cut<glm::kScaleBits>(derivative) * multiplier;
  return rounded<37, glm::kMultiplierBits>(exact, glm::kMultiplierBits);
}

void glm_backward(hls::stream<Word>& replay, const Scale scales[glm::kBanks],
                  Gradient gradients[glm::kEngineWeights], Weight weights[glm::kEngineWeights],
                  ap_uint<5> bits, ap_uint<13> chunks, bool first, bool last, ap_uint<6> shift) {
#pragma HLS ARRAY_RESHAPE variable = gradients type = cyclic factor = 16
#pragma HLS ARRAY_RESHAPE variable = weights type = cyclic factor = 16
#pragma HLS ARRAY_PARTITION variable = scales type = complete
each_chunk:
  for (int chunk = 0; chunk < chunks; ++chunk) {
    ap_uint<glm::kPlanes> features[glm::kBanks][glm::kChunk];
  gather:
    for (int plane = 0; plane < bits; ++plane) {
#pragma HLS PIPELINE II = 1
      const Word word = replay.read();
      for (int k = 0; k < glm::kBanks; ++k) {
#pragma HLS UNROLL
        for (int i = 0; i < glm::kChunk; ++i) {
#pragma HLS UNROLL
          const ap_uint<1> bit = word[glm::kChunk * k + i];
          features[k][i] = plane == 0 ? ap_uint<glm::kPlanes>(bit)
                                      : ap_uint<glm::kPlanes>((features[k][i] << 1) | bit);
        }
      }
    }
  each_lane:
    for (int i = 0; i < glm::kChunk; ++i) {
#pragma HLS UNROLL factor = 16
      const int at = glm::kChunk * chunk + i;
      Gradient gradient = first ? Gradient(0) : gradients[at];
      for (int k = 0; k < glm::kBanks; ++k) {
#pragma HLS UNROLL
        gradient += scales[k] * features[k][i];
      }
      gradients[at] = gradient;
      if (last) {
        const ap_int<50> exact =
            weights[at] - rounded<glm::kGradientBits, glm::kGradientBits>(gradient, shift);
        weights[at] = cut<glm::kWeightBits>(exact);
      }
    }
  }
}

}  // namespace catchment::hls_model
