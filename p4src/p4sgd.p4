// P4SGD's switch: the lowest latency for a few small vectors.  Workers' vectors meet in a slot, the sum goes to all of
// them; their acknowledgements meet in the same slot, and the confirmation frees it for the next round.
//
//   ingress                                                                  egress
//   +--------+  +---------------+  +-----------+  own, UDP 51836            +-----------+  +--------+  +-------+
//   | parser |->| faults        |->| addresses |--> validate, round_types -->| receivers |->| faults |->| drops |->
//   +--------+  +---------------+  +-----------+      -> jobs -> round_paths | (job)     |  +--------+  +-------+
//                                      |              -> rounds              |           |
//                                      |              -> answers ----------->| own port  |
//                                      `--> guard --> ARP for us: arp_answer>| (plain)   |
//                                            `------> the rest: l2 --------->+-----------+
//                                                \--> drops
//
//   rounds:  PA   heartbeats -> slot tag -> slot workers -> next exponent, flags, lanes (lane0 .. laneN)   -> FA
//            ACK  heartbeats -> slot tag (asked) -> ack tag -> ack workers                                 -> CNF
//
// P4SGD, Algorithm 2, with full round numbers (docs/explanation/protocol.md): nothing is cleared on completion, and duplicates are
// answered to the sender alone.  docs/explanation/p4-p4sgd.md has the tables' meaning; what is shared with luwu.p4 is in include/.
#include <core.p4>
#include <v1model.p4>

// The paper's vectors have 8 values, its register arrays 64 K entries.
#ifndef LANES
#define LANES 8
#endif
#ifndef SLOTS
#define SLOTS 65536
#endif

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
#include "include/round_types.p4"
#include "include/jobs.p4"
#ifdef TAGS
#include "include/tags.p4"
#endif
#include "include/packed.p4"
#include "include/slot.p4"
#include "include/exponent.p4"
#include "include/heartbeat.p4"
#include "../wire/generated/workers.p4"
#include "include/rounds.p4"
#include "include/answers.p4"
#include "include/receivers.p4"

control P4sgdIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    IngressFaults() faults;
    Addresses() addresses;
    ArpAnswer() arp_answer;
    Validate() validate;
    RoundTypes() round_types;
    Jobs() jobs;
#ifdef TAGS
    CheckTag() check_tag;
    WriteTag() write_tag;
#endif
    Packed() packed;
    RoundPaths() round_paths;
    Rounds() rounds;
    Answers() answers;
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
                    round_types.apply(hdr, meta);
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
                    round_paths.apply(hdr, meta);
                }
                if (meta.drop == DropReason.NONE && meta.event != Event.RELAYED) {
                    rounds.apply(hdr, meta);
                }
                if (meta.drop == DropReason.NONE) {
                    answers.apply(hdr, meta, standard_metadata);
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

#define PROGRAM_EGRESS P4sgdEgress
#include "include/egress.p4"

V1Switch(
    CatchmentParser(),
    CatchmentVerifyChecksum(),
    P4sgdIngress(),
    P4sgdEgress(),
    CatchmentComputeChecksum(),
    CatchmentDeparser()
) main;
