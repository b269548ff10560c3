// The kernels of P4SGD's worker behind C functions, for the tests of the RTL.
#include <cstdint>
#include <memory>
#include <vector>

#include "glm_engine.hpp"

namespace {

using namespace catchment::hls_model;
namespace glm = catchment::glm;

// An engine's memories.
struct Engine {
  std::vector<Weight> weights = std::vector<Weight>(glm::kEngineWeights);
  std::vector<Gradient> gradients = std::vector<Gradient>(glm::kEngineWeights);
  hls::stream<Word> replay;
};

}  // namespace

extern "C" {

Engine* hls_glm_new() { return std::make_unique<Engine>().release(); }

void hls_glm_delete(Engine* engine) { const std::unique_ptr<Engine> owned(engine); }

void hls_glm_set_weights(Engine* engine, const std::int64_t* weights, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) engine->weights[i] = weights[i];
}

void hls_glm_weights(const Engine* engine, std::int64_t* weights, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) weights[i] = engine->weights[i].to_int64();
}

// `words`: the micro-batch's 16 planes a chunk, of 8 words of 64 bits; of those `bits` are read.
void hls_glm_forward(Engine* engine, const std::uint64_t* words, std::uint32_t bits,
                     std::uint32_t chunks, std::int64_t* sums) {
  hls::stream<Word> planes;
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    for (std::uint32_t plane = 0; plane < bits; ++plane) {
      Word word = 0;
      for (int k = 0; k < glm::kBanks; ++k) {
        const std::uint64_t bank = words[(chunk * glm::kPlanes + plane) * glm::kBanks + k];
        word.range(glm::kChunk * k + glm::kChunk - 1, glm::kChunk * k) = bank;
      }
      planes.write(word);
    }
  }
  Accumulator found[glm::kBanks];
  glm_forward(planes, engine->replay, engine->weights.data(), bits, chunks, found);
  for (int k = 0; k < glm::kBanks; ++k) sums[k] = found[k].to_int64();
}

std::int32_t hls_glm_activation(std::int64_t sum, std::uint32_t shift) {
  return glm_activation(sum, shift).to_int();
}

std::int32_t hls_glm_scale(std::int32_t activation, std::int32_t label, std::uint32_t loss,
                           std::uint32_t multiplier) {
  return glm_scale(activation, label, static_cast<glm::Loss>(loss), multiplier).to_int();
}

void hls_glm_backward(Engine* engine, const std::int32_t* scales, std::uint32_t bits,
                      std::uint32_t chunks, std::uint32_t first, std::uint32_t last,
                      std::uint32_t shift) {
  Scale of_banks[glm::kBanks];
  for (int k = 0; k < glm::kBanks; ++k) of_banks[k] = scales[k];
  glm_backward(engine->replay, of_banks, engine->gradients.data(), engine->weights.data(), bits,
               chunks, first != 0, last != 0, shift);
}
}
