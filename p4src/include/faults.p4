// Loss on purpose, for tests: off until an entry is added.  threshold / 2^32 is the probability.
#ifndef CATCHMENT_FAULTS_P4
#define CATCHMENT_FAULTS_P4

control IngressFaults(inout metadata_t meta, in port_t port) {
    bit<32> dice = 32w0xffffffff;
    bit<32> limit = 0;

    @brief("drops a frame now and then, as it arrives: FAULT_INGRESS")
    action maybe_drop(@brief("the probability times 2^32") bit<32> threshold) {
        random(dice, 32w0, 32w0xffffffff);
        limit = threshold;
    }
    @brief("loss on purpose, for tests; empty unless somebody wants it")
    table ingress_faults {
        key = {
            port : exact @name("port") @brief("port that the frame came in at");
            meta.packet_type : ternary @name("type") @brief("PacketType of a job's frame; 0: plain traffic");
        }
        actions = { maybe_drop; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    apply {
        ingress_faults.apply();
        if (dice < limit) {
            meta.drop = DropReason.FAULT_INGRESS;
        }
    }
}

control EgressFaults(inout metadata_t meta, in port_t port) {
    bit<32> dice = 32w0xffffffff;
    bit<32> limit = 0;

    @brief("drops a frame now and then, as it leaves: FAULT_EGRESS")
    action maybe_drop(@brief("the probability times 2^32") bit<32> threshold) {
        random(dice, 32w0, 32w0xffffffff);
        limit = threshold;
    }
    @brief("loss on purpose, for tests; empty unless somebody wants it")
    table egress_faults {
        key = {
            port : exact @name("port") @brief("port that the frame leaves at");
            meta.packet_type : ternary @name("type") @brief("PacketType of a job's frame; 0: plain traffic");
        }
        actions = { maybe_drop; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    apply {
        egress_faults.apply();
        if (dice < limit) {
            meta.drop = DropReason.FAULT_EGRESS;
        }
    }
}

#endif  // CATCHMENT_FAULTS_P4
