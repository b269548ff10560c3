// LuWu's switch: gradients meet here and are added up, parameters are copied from here, heartbeats are merged.
//
//   ingress                                                                  egress
//   +--------+  +---------------+  +-----------+  own, UDP 51836            +-----------+  +--------+  +-------+
//   | parser |->| faults        |->| addresses |--> validate, stream_types ->| receivers |->| faults |->| drops |->
//   +--------+  +---------------+  +-----------+      -> jobs -> paths       | (job)     |  +--------+  +-------+
//                                      |              -> aggregation         |           |
//                                      |              -> emissions --------->| own port  |
//                                      `--> guard --> ARP for us: arp_answer>| (plain)   |
//                                            `------> the rest: l2 --------->+-----------+
//                                                \--> drops
//
//   aggregation:  heartbeats (worker0 .. workerN) -> last heartbeat
//                 window -> slot tag -> slot workers -> next exponent, flags, lanes (lane0 .. laneN)
//
// Each box is a control, its instance and, where it has one, its table under one name.
// Stateful operations are controls of their own with one read-modify-write of one register array each.
// docs/explanation/p4-luwu.md has the tables' meaning and the decisions; wire-format constants come from wire/generated.
#include <core.p4>
#include <v1model.p4>

#include "include/config.p4"
#include "../wire/generated/wire.p4"
#include "include/types.p4"
#include "include/lane.p4"
#ifdef TAGS
#include "include/siphash.p4"
#endif
#include "include/lanes.p4"
#include "include/headers.p4"
#include "include/parser.p4"
#include "include/checksum.p4"
#include "include/drops.p4"
#include "include/faults.p4"
#include "include/addresses.p4"
#include "include/guard.p4"
#include "include/l2.p4"
#include "include/validate.p4"
#include "include/stream_types.p4"
#include "include/jobs.p4"
#ifdef TAGS
#include "include/tags.p4"
#endif
#include "include/packed.p4"
#include "include/paths.p4"
#include "include/window.p4"
#include "include/slot.p4"
#include "include/exponent.p4"
#include "include/heartbeat.p4"
#include "../wire/generated/workers.p4"
#include "include/aggregation.p4"
#include "include/emissions.p4"
#include "include/receivers.p4"

control LuwuIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    IngressFaults() faults;
    Addresses() addresses;
    ArpAnswer() arp_answer;
    Validate() validate;
    StreamTypes() stream_types;
    Jobs() jobs;
#ifdef TAGS
    CheckTag() check_tag;
    WriteTag() write_tag;
#endif
    Packed() packed;
    Paths() paths;
    Aggregation() aggregation;
    Emissions() emissions;
    Guard() guard;
    L2() l2;
    Drops() drops;

    apply {
        if (hdr.catchment.isValid()) {
            meta.packet_type = hdr.catchment.type;
        }
        if (!hdr.ethernet.isValid()) {
            meta.drop = DropReason.PARSE_ERROR;
        } else {
            faults.apply(meta, standard_metadata.ingress_port);
        }
        if (meta.drop == DropReason.NONE) {
            addresses.apply(hdr, meta);
            if (meta.own_address == 1 && hdr.ipv4.isValid() && hdr.ipv4.protocol == PROTOCOL_UDP
                       && (!hdr.udp.isValid() || hdr.udp.dst_port == CATCHMENT_UDP_PORT)) {
                validate.apply(hdr, meta, standard_metadata);
                if (meta.drop == DropReason.NONE) {
                    stream_types.apply(hdr, meta);
                }
                if (meta.drop == DropReason.NONE) {
                    jobs.apply(hdr, meta, standard_metadata.ingress_port);
                }
#ifdef TAGS
                if (meta.drop == DropReason.NONE) {
                    check_tag.apply(hdr, meta, standard_metadata.ingress_port);
                }
#endif
                if (meta.drop == DropReason.NONE) {
                    packed.apply(hdr, meta);
                }
                if (meta.drop == DropReason.NONE) {
                    paths.apply(hdr, meta);
                }
                if (meta.drop == DropReason.NONE) {
                    aggregation.apply(hdr, meta);
                }
                if (meta.drop == DropReason.NONE) {
                    emissions.apply(hdr, meta, standard_metadata);
#ifdef TAGS
                    write_tag.apply(hdr, meta);
#endif
                }
            } else {
                guard.apply(hdr, meta, standard_metadata.ingress_port);
                if (meta.drop == DropReason.NONE) {
                    if (meta.own_address == 1 && hdr.arp.isValid() && hdr.arp.operation == ARP_REQUEST) {
                        arp_answer.apply(hdr, meta, standard_metadata);
                    } else {
                        l2.apply(hdr, meta, standard_metadata);
                    }
                }
            }
        }
        drops.apply(meta, standard_metadata);
    }
}

#define PROGRAM_EGRESS LuwuEgress
#include "include/egress.p4"

V1Switch(
    CatchmentParser(),
    CatchmentVerifyChecksum(),
    LuwuIngress(),
    LuwuEgress(),
    CatchmentComputeChecksum(),
    CatchmentDeparser()
) main;
