/* Every way of making copies and starting over, asked for by the packet itself: for fuzzing. */
#include <core.p4>
#include <v1model.p4>
header ask_h { bit<8> what; bit<8> session; bit<16> group; bit<16> keep; bit<16> sum; }
header item_h { bit<8> more; bit<24> value; }
header options_h { varbit<256> data; }
struct headers_t { ask_h ask; item_h[4] items; options_h options; }
struct meta_t { @field_list(1, 2) bit<8> rounds; @field_list(2) bit<16> kept; }
struct note_t { bit<8> what; bit<16> kept; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ask);
        transition select(hdr.ask.what[7:6]) { 1: items; 2: options; default: accept; }
    }
    state items {
        packet.extract(hdr.items.next);
        transition select(hdr.items.last.more) { 0: accept; default: items; }
    }
    state options {
        packet.extract(hdr.options, (bit<32>)hdr.ask.session);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) {
    apply { verify_checksum_with_payload(hdr.ask.isValid(), { hdr.ask.what }, hdr.ask.sum, HashAlgorithm.csum16); }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(64) seen;
    counter(64, CounterType.packets_and_bytes) kinds;
    action forward(bit<9> port) { sm.egress_spec = port; }
    action drop() { mark_to_drop(sm); }
    table kind {
        key = { hdr.ask.what : ternary; sm.ingress_port : range; }
        actions = { forward; drop; }
        default_action = forward(1);
        const entries = { (0xF &&& 0xF, 0 .. 99) : drop(); (_, 3 .. 5) : forward(9); }
    }
    apply {
        bit<32> count;
        seen.read(count, (bit<32>)hdr.ask.what);
        seen.write((bit<32>)hdr.ask.what, count + 1);
        kinds.count((bit<32>)hdr.ask.what);
        kind.apply();
        meta.kept = hdr.ask.keep;
        if (hdr.ask.what[0:0] == 1) { sm.mcast_grp = hdr.ask.group; }
        if (hdr.ask.what[1:1] == 1) { clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.ask.session, 2); }
        if (hdr.ask.what[2:2] == 1) { truncate((bit<32>)hdr.ask.keep); }
        if (hdr.ask.what[3:3] == 1) { digest<note_t>(1, { hdr.ask.what, meta.kept }); }
        if (hdr.ask.what[4:4] == 1 && meta.rounds < 70) {
            meta.rounds = meta.rounds + 1;
            resubmit_preserving_field_list(1);
        }
        if (sm.parser_error != error.NoError) { hdr.items.push_front(2); hdr.items[0].setValid(); }
        if (count[0:0] == 1) { hdr.items.pop_front(1); }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.ask.what[5:5] == 1 && meta.rounds < 70) {
            meta.rounds = meta.rounds + 1;
            recirculate_preserving_field_list(1);
        }
        if (hdr.ask.group == 9 && hdr.ask.what[7:7] == 0) { clone_preserving_field_list(CloneType.E2E, (bit<32>)hdr.ask.session, 1); }
        if (sm.egress_rid == 7) { mark_to_drop(sm); }
    }
}
control C(inout headers_t hdr, inout meta_t meta) {
    apply { update_checksum_with_payload(hdr.ask.isValid(), { hdr.ask.what }, hdr.ask.sum, HashAlgorithm.csum16); }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
