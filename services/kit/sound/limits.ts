/** Samples a second that a sound may have: eight times what people hear, and more than recorders make. */
export const maxSoundRate = 384_000;
/** Channels that a sound may have: more than any arrangement of loudspeakers that files are made for. */
export const maxSoundChannels = 32;
/**
 * Samples a second of all channels together: two channels at the highest rate, or sixteen at 48 kHz. Of more of them a second
 * takes so many bytes that frames of a codec, hidden in them, would be minutes.
 */
export const maxSamplesASecond = 768_000;
/** Ten hours of packets of 20 ms, which fill 25 MiB at the lowest rate: more of them are there to keep the thread busy. */
export const maxPackets = 2_000_000;
