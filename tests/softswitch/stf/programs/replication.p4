// Multicast, clones from ingress and egress with preserved fields, resubmit, recirculate, truncate, drop.
#include <core.p4>
#include <v1model.p4>

header r_h { bit<8> op; bit<8> kind; bit<8> kept; bit<8> lost; bit<8> rid; bit<8> port; }
struct headers_t { r_h r; }
struct meta_t {
    @field_list(1, 2)
    bit<8> kept;
    bit<8> lost;
    @field_list(2)
    bit<8> round;
}
#include "include/pipeline.p4"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.r); transition accept; }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (meta.round != 0) {
            hdr.r.lost = meta.lost;
            hdr.r.kept = meta.kept;
            hdr.r.rid = meta.round;
        }
        meta.kept = 0x4E;
        meta.lost = 0x10;
        switch (hdr.r.op) {
            1: { sm.mcast_grp = 1; }
            2: { clone(CloneType.I2E, 5); }
            3: { clone_preserving_field_list(CloneType.I2E, 5, 1); hdr.r.lost = 0xAA; }
            4: { clone_preserving_field_list(CloneType.I2E, 5, 1); mark_to_drop(sm); }
            5: {
                if (meta.round < 3) {
                    meta.round = meta.round + 1;
                    resubmit_preserving_field_list(2);
                }
            }
            7: { truncate(8); }
            8: { mark_to_drop(sm); }
            9: { sm.mcast_grp = 9; }
            10: { clone(CloneType.I2E, 99); }
            11: { sm.mcast_grp = 1; mark_to_drop(sm); }
            12: { mark_to_drop(sm); sm.egress_spec = 2; }
            13: { truncate(8); sm.mcast_grp = 1; }
        }
    }
}

control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.r.kind = (bit<8>) sm.instance_type;
        hdr.r.port = (bit<8>) sm.egress_port;
        if (sm.instance_type == 1 || sm.instance_type == 2) {
            hdr.r.kept = meta.kept;
            hdr.r.lost = meta.lost;
        } else if (sm.egress_rid != 0) {
            hdr.r.rid = (bit<8>) sm.egress_rid;
            if (sm.egress_rid == 7 && sm.egress_port == 3) {
                mark_to_drop(sm);
            }
        } else if (hdr.r.op == 6 && sm.instance_type == 0) {
            meta.round = 0x66;
            hdr.r.op = 0x60;
            recirculate_preserving_field_list(2);
        } else if (hdr.r.op == 14 && sm.instance_type == 0) {
            hdr.r.op = 0x61;
            truncate(8);
            recirculate_preserving_field_list(2);
        } else if (hdr.r.op == 0x21) {
            clone_preserving_field_list(CloneType.E2E, 6, 1);
        } else if (hdr.r.op == 0x22) {
            clone_preserving_field_list(CloneType.E2E, 6, 1);
            mark_to_drop(sm);
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), Out(), NoUpdate(), Emit()) main;
