// `...` without braces is the default of its type: an invalid header; in braces it stands for what is not named.
#include <core.p4>
#include <v1model.p4>

enum fruit_t { apple, pear }
enum bit<8> code_t { one = 1, none = 0 }

header byte_h {
    bit<8> value;
}

struct pair_t {
    bit<8> left;
    byte_h right;
}

struct headers_t {
    byte_h first;
    byte_h second;
    byte_h result;
}

struct metadata_t {}

byte_h nothing() {
    return ...;
}

bit<8> is_there(in byte_h given) {
    return given.isValid() ? 8w1 : 8w0;
}

parser TwoBytes(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.first);
        packet.extract(hdr.second);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control Defaults(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> seen = 0;
        byte_h made = ...;
        byte_h braced = { ... };
        pair_t pair = { left = 3, ... };
        seen[0:0] = is_there(made)[0:0];
        seen[1:1] = is_there(nothing())[0:0];
        seen[2:2] = is_there(braced)[0:0];
        seen[3:3] = is_there(pair.right)[0:0];
        bit<8> number = ...;
        fruit_t fruit = ...;
        code_t code = ...;
        bool truth = ...;
        error problem = ...;
        if (number == 0 && fruit == fruit_t.apple && code == code_t.none && !truth && problem == error.NoError) {
            seen[7:7] = 1;
        }
        if (hdr.first.value == 2) {
            hdr.second = ...;
        }
        hdr.result = { seen };
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control All(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(TwoBytes(), NoVerify(), Defaults(), NoEgress(), NoUpdate(), All()) main;
