// The blocks that most programs here leave empty. Include it after headers_t and meta_t.
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
