// Requests that are given back once they are carried out, whenever their clients take the answers.
#pragma once

#include <grpcpp/support/message_allocator.h>

#include <optional>

namespace catchment::server {

// Where gRPC gets the messages of a method from. Without it each request stays in memory until its
// answer has gone, which is for a client to say.
template <class Request, class Response>
class FreedRequests final : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override { return new Holder; }

 private:
  class Holder final : public grpc::MessageHolder<Request, Response> {
   public:
    Holder() {
      this->set_request(&request_.emplace());
      this->set_response(&response_);
    }
    void FreeRequest() override {
      request_.reset();
      this->set_request(nullptr);
    }
    void Release() override { delete this; }

   private:
    std::optional<Request> request_;
    Response response_;
  };
};

}  // namespace catchment::server
