// Admission: the generation and the port decide whose frame this is, and it must come from the address and the UDP port
// that the job has there: another program on a member's host has neither that port nor the right to another address.
#ifndef CATCHMENT_JOBS_P4
#define CATCHMENT_JOBS_P4

// Bits of the workers that this build has heartbeat registers for.
const worker_bits_t BUILT_WORKERS = (1 << MAX_WORKERS) - 1;

control Jobs(in headers_t hdr, inout metadata_t meta, in port_t port) {
    direct_counter(CounterType.packets_and_bytes) job_packets;

    @brief("a worker, or a switch that is one worker of this switch, is on this port")
    action worker(@brief("what this switch does with the stream: Mode") Mode mode,
                  @brief("the worker's index, from 0") bit<8> wid,
                  @brief("the worker's bit, 1 << wid; must be in `full`") worker_bits_t own,
                  @brief("first slot of the stream") bit<32> base,
                  @brief("slots of the stream - 1, where the slots are a power of two") bit<32> mask,
                  @brief("the bits of all workers on this switch") worker_bits_t full,
                  @brief("row of the job's stream in the registers that each job has once") bit<16> job,
                  @brief("multicast group of the workers' ports") bit<16> group,
                  @brief("port towards the root (REDUCE, BCAST) or the parent switch (LEAF)") port_t up_port,
                  @brief("LEAF: index of this switch as a worker of its parent") bit<8> up_wid,
                  @brief("IPv4 address that the frames must come from") ip_t src_ip,
                  @brief("UDP port that the frames must come from") bit<16> src_udp) {
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
    @brief("the root, or the parent switch, is on this port")
    action root(@brief("what this switch does with the stream: Mode") Mode mode,
                @brief("row of the job's stream in the registers that each job has once") bit<16> job,
                @brief("multicast group of the workers' ports") bit<16> group,
                @brief("IPv4 address that the frames must come from") ip_t src_ip,
                @brief("UDP port that the frames must come from") bit<16> src_udp) {
        meta.job.from_root = 1;
        meta.job.mode = mode;
        meta.job.wid = 0;
        meta.job.index = job;
        meta.job.group = group;
        meta.job.src_ip = src_ip;
        meta.job.src_udp = src_udp;
        job_packets.count();
    }
    @brief("no job has this generation on this port: UNKNOWN_JOB")
    action unknown() {
        meta.drop = DropReason.UNKNOWN_JOB;
    }
    @brief("whose frame a job's frame is, by its generation and the port it came in at")
    table jobs {
        key = {
            hdr.catchment.gen : exact @name("gen") @brief("generation of the stream");
            port : exact @name("port") @brief("port that the frame came in at");
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
