// What happens to each copy that leaves.  PROGRAM_EGRESS is the control's name, so that P4Info names say the program.
#ifndef CATCHMENT_EGRESS_P4
#define CATCHMENT_EGRESS_P4

control PROGRAM_EGRESS(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    Receivers() receivers;
    EgressFaults() faults;
    Drops() drops;

    apply {
        if (meta.route == Route.JOB) {
            receivers.apply(hdr, meta, standard_metadata.egress_port);
            meta.packet_type = hdr.catchment.type;
        } else if (meta.route == Route.PLAIN && standard_metadata.egress_port == standard_metadata.ingress_port) {
            meta.drop = DropReason.FLOOD_SOURCE;
        }
        if (meta.drop == DropReason.NONE) {
            faults.apply(meta, standard_metadata.egress_port);
        }
        drops.apply(meta, standard_metadata);
    }
}

#endif  // CATCHMENT_EGRESS_P4
