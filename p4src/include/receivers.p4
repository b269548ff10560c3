// A job's frame on its way to one receiver: the addresses of that receiver, from the switch.
#ifndef CATCHMENT_RECEIVERS_P4
#define CATCHMENT_RECEIVERS_P4

control Receivers(inout headers_t hdr, inout metadata_t meta, in port_t port) {
    action rewrite(mac_t dst_mac, ip_t dst_ip, bit<16> dst_udp, mac_t src_mac, ip_t src_ip) {
        hdr.ethernet.dst = dst_mac;
        hdr.ethernet.src = src_mac;
        hdr.ipv4.dst = dst_ip;
        hdr.ipv4.src = src_ip;
        hdr.ipv4.ttl = 64;
        hdr.udp.dst_port = dst_udp;
        hdr.udp.src_port = CATCHMENT_UDP_PORT;
        // The lanes change in flight; zero means that there is no UDP checksum.
        hdr.udp.checksum = 0;
    }
    action no_receiver() {
        meta.drop = DropReason.NO_RECEIVER;
    }
    table receivers {
        key = {
            hdr.catchment.gen : exact @name("gen");
            port : exact @name("port");
        }
        actions = { rewrite; no_receiver; }
        const default_action = no_receiver();
        size = 4096;
    }
    apply {
        receivers.apply();
    }
}

#endif  // CATCHMENT_RECEIVERS_P4
