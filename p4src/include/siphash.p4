// SipHash-2-4 (Aumasson, Bernstein, 2012) word by word: 64-bit additions, rotations and exclusive ors, nothing else.
#ifndef CATCHMENT_SIPHASH_P4
#define CATCHMENT_SIPHASH_P4

#define ROTATED(x, n) (((x) << (n)) | ((x) >> (64 - (n))))

struct sip_t {
    bit<64> v0;
    bit<64> v1;
    bit<64> v2;
    bit<64> v3;
}

// A round, as an action: p4c writes expressions into expressions, but not across an action's call; without one it never ends.
#define SIP_ROUND(s) \
    action round() { \
        s.v0 = s.v0 + s.v1; \
        s.v1 = ROTATED(s.v1, 13) ^ s.v0; \
        s.v0 = ROTATED(s.v0, 32); \
        s.v2 = s.v2 + s.v3; \
        s.v3 = ROTATED(s.v3, 16) ^ s.v2; \
        s.v0 = s.v0 + s.v3; \
        s.v3 = ROTATED(s.v3, 21) ^ s.v0; \
        s.v2 = s.v2 + s.v1; \
        s.v1 = ROTATED(s.v1, 17) ^ s.v2; \
        s.v2 = ROTATED(s.v2, 32); \
    }

// One word of the message.
control SipWord(in bit<64> word, inout sip_t s) {
    SIP_ROUND(s)

    apply {
        s.v3 = s.v3 ^ word;
        round();
        round();
        s.v0 = s.v0 ^ word;
    }
}

control SipBegin(in bit<64> k0, in bit<64> k1, out sip_t s) {
    apply {
        s.v0 = k0 ^ 64w0x736f6d6570736575;
        s.v1 = k1 ^ 64w0x646f72616e646f6d;
        s.v2 = k0 ^ 64w0x6c7967656e657261;
        s.v3 = k1 ^ 64w0x7465646279746573;
    }
}

control SipEnd(inout sip_t s, out bit<64> hash) {
    SIP_ROUND(s)

    apply {
        s.v2 = s.v2 ^ 64w0xff;
        round();
        round();
        round();
        round();
        hash = s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
    }
}

#endif  // CATCHMENT_SIPHASH_P4
