// What the log has when an exception that nobody catches ends the process.
#pragma once

namespace catchment::server {

// An exception in a thread of the data plane leaves a frame carried out in part: registers have
// what it had written so far, which cannot be taken back, so nothing may go on with them. From this
// call on such an end says on stderr, after what it was, what to do; the signal is still SIGABRT.
void say_last_words();

}  // namespace catchment::server
