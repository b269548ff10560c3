// Admission: the generation and the port decide whose frame this is, and it must come from the address and the UDP port
// that the job has there: another program on a member's host has neither that port nor the right to another address.
#ifndef CATCHMENT_JOBS_P4
#define CATCHMENT_JOBS_P4

// Bits of the workers that this build has heartbeat registers for.
const worker_bits_t BUILT_WORKERS = (1 << MAX_WORKERS) - 1;

control Jobs(in headers_t hdr, inout metadata_t meta, in port_t port) {
    direct_counter(CounterType.packets_and_bytes) job_packets;

    // A worker, or a child rack, is on this port.
    action worker(Mode mode, bit<8> wid, worker_bits_t own, bit<32> base, bit<32> mask, worker_bits_t full,
                  bit<16> job, bit<16> group, port_t up_port, bit<8> up_wid, ip_t src_ip, bit<16> src_udp) {
        meta.job.from_root = 0;
        meta.job.mode = mode;
        meta.job.wid = wid;
        meta.job.own = own;
        meta.job.base = base;
        meta.job.mask = mask;
        meta.job.full = full;
        meta.job.index = job;
        meta.job.group = group;
        meta.job.up_port = up_port;
        meta.job.up_wid = up_wid;
        meta.job.src_ip = src_ip;
        meta.job.src_udp = src_udp;
        job_packets.count();
    }
    // The root, or the parent switch, is on this port.
    action root(Mode mode, bit<16> job, bit<16> group, ip_t src_ip, bit<16> src_udp) {
        meta.job.from_root = 1;
        meta.job.mode = mode;
        meta.job.wid = 0;
        meta.job.index = job;
        meta.job.group = group;
        meta.job.src_ip = src_ip;
        meta.job.src_udp = src_udp;
        job_packets.count();
    }
    action unknown() {
        meta.drop = DropReason.UNKNOWN_JOB;
    }
    table jobs {
        key = {
            hdr.catchment.gen : exact @name("gen");
            port : exact @name("port");
        }
        actions = { worker; root; unknown; }
        const default_action = unknown();
        counters = job_packets;
        size = 4096;
    }
    apply {
        jobs.apply();
        // Whatever the entry says, no index leaves the arrays that were built.
        meta.slot.index = meta.job.base + (hdr.catchment.seq & meta.job.mask);
        if (meta.drop == DropReason.NONE) {
            if (hdr.ipv4.src != meta.job.src_ip) {
                meta.drop = DropReason.FORGED_SOURCE;
            } else if (hdr.udp.src_port != meta.job.src_udp) {
                meta.drop = DropReason.WRONG_UDP_PORT;
            } else if ((bit<32>)meta.job.index >= JOBS
                       || (meta.job.from_root == 0
                           && (meta.slot.index >= SLOTS || (meta.job.full & ~BUILT_WORKERS) != 0 || meta.job.own == 0
                               || (meta.job.own & ~meta.job.full) != 0))) {
                meta.drop = DropReason.BAD_SLOT;
            }
        }
    }
}

#endif  // CATCHMENT_JOBS_P4
