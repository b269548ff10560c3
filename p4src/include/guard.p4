// What each host may send outside of jobs: every port is bound to the addresses of the host that is plugged in there, so that
// nobody speaks as a switch or as a neighbour.  Without it a host would send sums and parameters to a worker itself, in
// the switch's name.  Frames of jobs are not judged here: table `jobs` says whose they must be.
#ifndef CATCHMENT_GUARD_P4
#define CATCHMENT_GUARD_P4

control Guard(in headers_t hdr, inout metadata_t meta, in port_t port) {
    ip_t address = 0;
    bit<1> is_bound = 0;
    bit<1> from_switch = 0;
    bit<1> is_own = 0;
    bit<1> is_other = 0;
    mac_t host_mac = 0;
    ip_t host_ip = 0;

    @brief("one NIC with one address is plugged in")
    action host(@brief("its Ethernet address") mac_t mac, @brief("its IPv4 address") ip_t ip) {
        is_bound = 1;
        host_mac = mac;
        host_ip = ip;
    }
    @brief("a switch is at the other end, which has bound its own hosts")
    action trunk() {
        from_switch = 1;
    }
    @brief("nobody is known there: FORGED_SOURCE")
    action stranger() {
        meta.drop = DropReason.FORGED_SOURCE;
    }
    // Until the control plane sets `stranger`, a port that nothing is said of may send what it likes.
    @brief("who is plugged in at a port, and so what plain traffic may come from there")
    table bindings {
        key = {
            port : exact @name("port") @brief("port that the frame came in at");
        }
        actions = { host; trunk; stranger; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    @brief("an address of this switch: no host may say that it has it")
    action own() {
        is_own = 1;
    }
    @brief("an address of another switch: hosts may neither have it nor send to it")
    action other() {
        is_other = 1;
    }
    @brief("the addresses of all switches of the network")
    table switch_addresses {
        key = {
            address : exact @name("address") @brief("IPv4 address: the sender's of ARP, else the destination");
        }
        actions = { own; other; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        bindings.apply();
        if (hdr.arp.isValid()) {
            address = hdr.arp.sender_ip;
        } else if (hdr.ipv4.isValid()) {
            address = hdr.ipv4.dst;
        }
        if (hdr.arp.isValid() || hdr.ipv4.isValid()) {
            switch_addresses.apply();
        }
        if (meta.drop == DropReason.NONE) {
            if (is_bound == 1 && hdr.ethernet.src != host_mac) {
                meta.drop = DropReason.FORGED_SOURCE;
            } else if (hdr.arp.isValid()) {
                // An ARP probe asks before it has an address: zero claims nothing.
                if (is_own == 1 || (is_other == 1 && from_switch == 0)
                    || (is_bound == 1 && (hdr.arp.sender_mac != host_mac
                                          || (hdr.arp.sender_ip != host_ip && hdr.arp.sender_ip != 0)))) {
                    meta.drop = DropReason.FORGED_ARP;
                }
            } else if (hdr.ipv4.isValid()) {
                if (is_bound == 1 && hdr.ipv4.src != host_ip) {
                    meta.drop = DropReason.FORGED_SOURCE;
                } else if (is_other == 1 && from_switch == 0) {
                    meta.drop = DropReason.OTHER_SWITCH;
                }
            }
        }
    }
}

#endif  // CATCHMENT_GUARD_P4
