// Plain layer 2 forwarding of everything that is not addressed to the switch.
#ifndef CATCHMENT_L2_P4
#define CATCHMENT_L2_P4

control L2(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action forward(port_t port) {
        standard_metadata.egress_spec = port;
    }
    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }
    action no_route() {
        meta.drop = DropReason.NO_ROUTE;
    }
    table l2 {
        key = {
            hdr.ethernet.dst : exact @name("dst");
        }
        actions = { forward; flood; no_route; }
        default_action = no_route();
        size = 4096;
    }
    apply {
        l2.apply();
    }
}

#endif  // CATCHMENT_L2_P4
