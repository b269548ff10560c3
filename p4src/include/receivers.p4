// A job's frame on its way to one receiver: the addresses of that receiver, from the switch.
#ifndef CATCHMENT_RECEIVERS_P4
#define CATCHMENT_RECEIVERS_P4

control Receivers(inout headers_t hdr, inout metadata_t meta, in port_t port) {
    @brief("writes the receiver's addresses and the switch's own into the frame")
    action rewrite(@brief("Ethernet address of the receiver") mac_t dst_mac,
                   @brief("IPv4 address of the receiver") ip_t dst_ip,
                   @brief("UDP port of the job at the receiver") bit<16> dst_udp,
                   @brief("Ethernet address of this switch") mac_t src_mac,
                   @brief("IPv4 address of this switch") ip_t src_ip) {
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
    @brief("the job has nobody on this port: NO_RECEIVER")
    action no_receiver() {
        meta.drop = DropReason.NO_RECEIVER;
    }
    @brief("the addresses that a job's frame leaves with, by its generation and the port it leaves at")
    table receivers {
        key = {
            hdr.catchment.gen : exact @name("gen") @brief("generation of the stream");
            port : exact @name("port") @brief("port that the frame leaves at");
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
