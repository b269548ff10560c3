// Loss on purpose, for tests: off until an entry is added.  threshold / 2^32 is the probability.
#ifndef CATCHMENT_FAULTS_P4
#define CATCHMENT_FAULTS_P4

control IngressFaults(inout metadata_t meta, in port_t port) {
    bit<32> dice = 32w0xffffffff;
    bit<32> limit = 0;

    action maybe_drop(bit<32> threshold) {
        random(dice, 32w0, 32w0xffffffff);
        limit = threshold;
    }
    // `type` is 0 for plain traffic.
    table ingress_faults {
        key = {
            port : exact @name("port");
            meta.packet_type : ternary @name("type");
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

    action maybe_drop(bit<32> threshold) {
        random(dice, 32w0, 32w0xffffffff);
        limit = threshold;
    }
    table egress_faults {
        key = {
            port : exact @name("port");
            meta.packet_type : ternary @name("type");
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
