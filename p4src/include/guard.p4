// What a host must not send as plain traffic: an ARP message that says it has a switch's address (the others would send
// their vectors to it), and packets for another switch (they would arrive there as the rack's own).
#ifndef CATCHMENT_GUARD_P4
#define CATCHMENT_GUARD_P4

control Guard(in headers_t hdr, inout metadata_t meta, in port_t port) {
    ip_t address = 0;
    bit<1> from_switch = 0;
    bit<1> is_own = 0;
    bit<1> is_other = 0;

    action trunk() {
        from_switch = 1;
    }
    // Ports with another switch at the other end; every port is a host's until an entry says otherwise.
    table trunks {
        key = {
            port : exact @name("port");
        }
        actions = { trunk; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    action own() {
        is_own = 1;
    }
    action other() {
        is_other = 1;
    }
    table switch_addresses {
        key = {
            address : exact @name("address");
        }
        actions = { own; other; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        trunks.apply();
        if (hdr.arp.isValid()) {
            address = hdr.arp.sender_ip;
        } else if (hdr.ipv4.isValid()) {
            address = hdr.ipv4.dst;
        }
        if (hdr.arp.isValid() || hdr.ipv4.isValid()) {
            switch_addresses.apply();
        }
        if (hdr.arp.isValid() && (is_own == 1 || (is_other == 1 && from_switch == 0))) {
            meta.drop = DropReason.FORGED_ARP;
        } else if (hdr.ipv4.isValid() && is_other == 1 && from_switch == 0) {
            meta.drop = DropReason.OTHER_SWITCH;
        }
    }
}

#endif  // CATCHMENT_GUARD_P4
