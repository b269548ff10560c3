// One table of every match kind and one of every stateful object, for the P4Runtime server's tests.
//
// A frame: Ethernet, then the `probe_h` header whose fields are the keys. What the tables decide is
// written back into the probe, and it leaves by the port that `exact_t` chose (else it is dropped).
#include <core.p4>
#include <v1model.p4>

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header probe_h {
    bit<32>  address;
    bit<16>  kind;
    bit<16>  number;
    bit<128> wide;
    bit<16>  result_lpm;
    bit<16>  result_ternary;
    bit<16>  result_range;
    bit<16>  result_optional;
    bit<16>  result_wide;
    bit<16>  result_default;
}

@controller_header("packet_in")
header packet_in_h {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_h {
    bit<9> egress_port;
    bit<7> padding;
}

struct headers_t {
    packet_out_h packet_out;
    packet_in_h  packet_in;
    ethernet_h   ethernet;
    probe_h      probe;
}

struct metadata_t {
}

#define CPU_PORT 510

parser ProbeParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x88b5: probe;
            default: accept;
        }
    }
    state probe {
        packet.extract(hdr.probe);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control KindsIngress(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    counter(16, CounterType.packets_and_bytes) by_port;
    register<bit<32>>(64) cells;
    register<int<12>>(4) signed_cells;
    register<bit<128>>(2) wide_cells;
    direct_counter(CounterType.packets_and_bytes) exact_packets;

    action drop() {
        mark_to_drop(standard_metadata);
    }
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
        exact_packets.count();
    }
    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
        exact_packets.count();
    }
    action to_controller(bit<7> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.reason = reason;
        standard_metadata.egress_spec = CPU_PORT;
        exact_packets.count();
    }
    action set_lpm(bit<16> value) {
        hdr.probe.result_lpm = value;
    }
    action set_ternary(bit<16> value) {
        hdr.probe.result_ternary = value;
    }
    action set_range(bit<16> value) {
        hdr.probe.result_range = value;
    }
    action set_optional(bit<16> value) {
        hdr.probe.result_optional = value;
    }
    action set_wide(bit<16> value, bit<128> unused) {
        hdr.probe.result_wide = value;
    }
    action set_default(bit<16> value) {
        hdr.probe.result_default = value;
    }

    table exact_t {
        key = {
            hdr.ethernet.dst: exact;
            standard_metadata.ingress_port: exact;
        }
        actions = { forward; flood; to_controller; drop; }
        default_action = drop();
        counters = exact_packets;
        size = 262144;
    }
    table lpm_t {
        key = { hdr.probe.address: lpm; }
        actions = { set_lpm; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table ternary_t {
        key = {
            hdr.probe.kind: ternary;
            hdr.probe.number: exact;
        }
        actions = { set_ternary; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table range_t {
        key = { hdr.probe.number: range; }
        actions = { set_range; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table optional_t {
        key = { hdr.probe.number: optional; }
        actions = { set_optional; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table wide_t {
        key = { hdr.probe.wide: exact; }
        actions = { set_wide; @defaultonly NoAction; }
        default_action = NoAction();
        size = 4;
    }
    table keyless_t {
        actions = { set_default; @defaultonly NoAction; }
        default_action = set_default(7);
    }
    table const_default_t {
        key = { hdr.probe.kind: exact; }
        actions = { @tableonly set_default; NoAction; }
        const default_action = NoAction();
    }
    table const_t {
        key = { hdr.probe.kind: exact; }
        actions = { set_default; NoAction; }
        default_action = NoAction();
        const entries = {
            0x0101: set_default(0x11);
            0x0202: set_default(0x22);
        }
    }

    apply {
        by_port.count((bit<32>)standard_metadata.ingress_port);
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            exact_t.apply();
        }
        if (hdr.probe.isValid()) {
            lpm_t.apply();
            ternary_t.apply();
            range_t.apply();
            optional_t.apply();
            wide_t.apply();
            keyless_t.apply();
            const_default_t.apply();
            const_t.apply();
            cells.write((bit<32>)hdr.probe.number, hdr.probe.address);
            signed_cells.write(0, (int<12>)hdr.probe.kind[11:0]);
            wide_cells.write(1, hdr.probe.wide);
        }
    }
}

control KindsEgress(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    apply { }
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ProbeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
    }
}

V1Switch(ProbeParser(), NoVerify(), KindsIngress(), KindsEgress(), NoUpdate(), ProbeDeparser()) main;
