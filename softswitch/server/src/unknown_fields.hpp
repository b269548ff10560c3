// Fields that a client has set and this edition of P4Runtime does not have.
#pragma once

#include <google/protobuf/message.h>

namespace catchment::server {

// Protobuf takes such fields without a word, so what a newer client asks for would be left undone.

// Throws RpcError(INVALID_ARGUMENT) that names the first such field of the message or of one in it.
// A P4Info is not looked into: one of a newer compiler says more about the same program, and is
// given back whole.
void refuse_unknown_fields(const google::protobuf::Message& message);

// The same, without the messages in it.
void refuse_own_unknown_fields(const google::protobuf::Message& message);

}  // namespace catchment::server
