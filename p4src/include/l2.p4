// Plain layer 2 forwarding of everything that is not addressed to the switch.
#ifndef CATCHMENT_L2_P4
#define CATCHMENT_L2_P4

control L2(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @brief("sends the frame out")
    action forward(@brief("port to send it to") port_t port) {
        standard_metadata.egress_spec = port;
    }
    @brief("sends a copy to each port of a group but the one that the frame came in at")
    action flood(@brief("multicast group") bit<16> group) {
        standard_metadata.mcast_grp = group;
    }
    @brief("drops the frame: NO_ROUTE")
    action no_route() {
        meta.drop = DropReason.NO_ROUTE;
    }
    @brief("where frames that are not for the switch go")
    table l2 {
        key = {
            hdr.ethernet.dst : exact @name("dst") @brief("Ethernet destination");
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
