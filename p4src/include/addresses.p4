// The switch's own addresses: whether a frame means the switch, and the answer to ARP requests for them.
#ifndef CATCHMENT_ADDRESSES_P4
#define CATCHMENT_ADDRESSES_P4

const bit<16> ARP_REQUEST = 1;
const bit<16> ARP_REPLY = 2;

control Addresses(in headers_t hdr, inout metadata_t meta) {
    @brief("the frame is for the switch; ARP requests are answered")
    action answer(@brief("Ethernet address that ARP answers give") mac_t mac) {
        meta.own_address = 1;
        meta.own_mac = mac;
    }
    @brief("the addresses of the switch itself")
    table own_addresses {
        key = {
            meta.target_ip : exact @name("target") @brief("IPv4 address that the frame is for, or that ARP asks for");
        }
        actions = { answer; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    apply {
        if (hdr.arp.isValid()) {
            meta.target_ip = hdr.arp.target_ip;
        } else if (hdr.ipv4.isValid()) {
            meta.target_ip = hdr.ipv4.dst;
        }
        if (hdr.arp.isValid() || hdr.ipv4.isValid()) {
            own_addresses.apply();
        }
    }
}

// Turns a request into its reply, back to where it came from.
control ArpAnswer(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.ethernet.dst = hdr.arp.sender_mac;
        hdr.ethernet.src = meta.own_mac;
        hdr.arp.operation = ARP_REPLY;
        hdr.arp.target_mac = hdr.arp.sender_mac;
        hdr.arp.target_ip = hdr.arp.sender_ip;
        hdr.arp.sender_mac = meta.own_mac;
        hdr.arp.sender_ip = meta.target_ip;
        meta.route = Route.ANSWER;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }
}

#endif  // CATCHMENT_ADDRESSES_P4
