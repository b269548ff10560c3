/* Loops whose rounds the packet decides, in every place that may hold one, on packets that are copied and sent anew.
 * `what`: 1 ingress, 2 an action, 4 a function, 8 egress, 16 the deparser, 32 multicast, 64 a clone, 128 once more. */
#include <core.p4>
#include <v1model.p4>

header head_t {
    bit<8> what;
    bit<8> rounds;
    bit<16> more;
    bit<32> sum;
}
struct headers_t { head_t head; }
struct meta_t { @field_list(1) bit<8> kept; }

bit<32> add_up(in bit<8> last) {
    bit<32> sum = 0;
    for (bit<8> i = 1; i <= last; i = i + 1) { sum = sum + (bit<32>)i; }
    return sum;
}

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.head);
        transition accept;
    }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(1) rounds_taken;
    bit<32> taken = 0;
    action walk(bit<16> last) {
        for (bit<16> i in 0 .. last) { taken = taken + 1; }
    }
    apply {
        sm.egress_spec = 1;
        rounds_taken.read(taken, 0);
        if (hdr.head.what & 1 != 0) {
            for (bit<8> i = 1; i <= hdr.head.rounds; i = i + 1) {
                taken = taken + 1;
                rounds_taken.write(0, taken);
            }
        }
        if (hdr.head.what & 2 != 0) { walk(hdr.head.more); }
        if (hdr.head.what & 4 != 0) { hdr.head.sum = add_up(hdr.head.rounds); }
        if (hdr.head.what & 32 != 0) { sm.mcast_grp = 1; }
        if (hdr.head.what & 64 != 0) { clone_preserving_field_list(CloneType.I2E, 1, 1); }
        if (hdr.head.what & 128 != 0 && sm.instance_type == 0) { resubmit_preserving_field_list(1); }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.head.what & 8 != 0) {
            bit<16> left = hdr.head.more;
            for (bit<8> i = 0; left != 1; i = i + 1) {
                if (i == 7) { continue; }
                left = left >> 1;
                hdr.head.sum = hdr.head.sum + 1;
            }
        }
        if (hdr.head.what & 64 != 0 && sm.instance_type != 2) { clone_preserving_field_list(CloneType.E2E, 2, 1); }
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) {
    apply {
        if (hdr.head.what & 16 != 0) {
            for (bit<8> i = 0; i < hdr.head.rounds; i = i + 3) { packet.emit(hdr.head); }
        } else {
            packet.emit(hdr.head);
        }
    }
}
V1Switch(P(), V(), MyIngress(), MyEgress(), C(), D()) main;
