// The bounds within which audio is believed and measured.

/** Most samples a second: eight times the rate that people hear, and more than recorders make. */
export const maxSoundRate = 384_000;
/** Most channels: more than any arrangement of loudspeakers has that files are made for. */
export const maxSoundChannels = 32;
/**
 * Most samples a second of all channels together: two channels at the highest rate, or sixteen at 48 kHz. With more channels, the bytes
 * of one second could hide minutes of codec frames.
 */
export const maxSamplesASecond = 768_000;
/** Ten hours of packets of 20 ms, which fill 25 MiB at the lowest rate. Only a file that is made to keep the thread busy has more. */
export const maxPackets = 2_000_000;
