// The highest rates, most channels and most packets of WAV and Ogg audio that is measured. A file that claims more has no known length.

/** Most samples a second: eight times 48 kHz, and more than recorders make. */
export const maxSoundRate = 384_000;
/** Most channels: more than the loudspeakers that files are made for. */
export const maxSoundChannels = 32;
/**
 * Most samples a second of all channels together: two channels at the highest rate, or sixteen at 48 kHz. With more channels, the bytes
 * of one second could hide minutes of codec frames.
 */
export const maxSamplesASecond = 768_000;
/** Most packets: eleven hours of 20 ms each, which fill 25 MiB at the lowest rate. Only a file made to keep the thread busy has more. */
export const maxPackets = 2_000_000;
