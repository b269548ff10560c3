// Action profiles and selectors, meters, digests, value sets and idle timeouts, for the P4Runtime server's tests.
//
// A frame: Ethernet whose type is in the value set, then `probe_h`. Results are written back into the probe, which
// leaves by port 2.
#include <core.p4>
#include <v1model.p4>

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header probe_h {
    bit<16> flow;
    bit<16> member;
    bit<16> group;
    bit<8>  color;
    bit<8>  direct_color;
    bit<16> idle;
}

struct headers_t {
    ethernet_h ethernet;
    probe_h    probe;
}

struct metadata_t {
    bit<2> direct_color;
}

struct learned_t {
    bit<48> src;
    bit<9>  port;
    bit<16> flow;
}

parser ProbeParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) probe_types;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x88b5: probe;
            probe_types: probe;
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

control ExtrasIngress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    action_profile(8) members;
    action_selector(HashAlgorithm.crc16, 16, 16) groups;
    meter(4, MeterType.packets) flow_meter;
    direct_meter<bit<2>>(MeterType.packets) entry_meter;

    action set_member(bit<16> value) {
        hdr.probe.member = value;
    }
    action set_group(bit<16> value) {
        hdr.probe.group = value;
    }
    action color_it() {
        entry_meter.read(meta.direct_color);
        hdr.probe.direct_color = 6w0 ++ meta.direct_color;
    }
    action seen(bit<16> value) {
        hdr.probe.idle = value;
    }

    table member_t {
        key = { hdr.probe.flow: exact; }
        actions = { set_member; NoAction; }
        implementation = members;
        size = 64;
    }
    table group_t {
        key = {
            hdr.probe.flow: exact;
            hdr.ethernet.src: selector;
        }
        actions = { set_group; NoAction; }
        implementation = groups;
        size = 64;
    }
    table metered_t {
        key = { hdr.probe.flow: exact; }
        actions = { color_it; NoAction; }
        default_action = NoAction();
        meters = entry_meter;
        size = 64;
    }
    table idle_t {
        key = { hdr.probe.flow: exact; }
        actions = { seen; NoAction; }
        default_action = NoAction();
        support_timeout = true;
        size = 64;
    }

    apply {
        standard_metadata.egress_spec = 2;
        if (hdr.probe.isValid()) {
            bit<2> color = 0;
            member_t.apply();
            group_t.apply();
            metered_t.apply();
            idle_t.apply();
            flow_meter.execute_meter((bit<32>)hdr.probe.flow, color);
            hdr.probe.color = 6w0 ++ color;
            digest<learned_t>(1, { hdr.ethernet.src, standard_metadata.ingress_port, hdr.probe.flow });
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control ExtrasEgress(inout headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    apply { }
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control ProbeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.probe);
    }
}

V1Switch(ProbeParser(), NoVerify(), ExtrasIngress(), ExtrasEgress(), NoUpdate(), ProbeDeparser()) main;
