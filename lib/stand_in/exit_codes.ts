// Owns: what the exit codes of epochd-stand-in mean, and its word that it is up; stand_in.c has the same. Must not: run it.

export const exitCodes = { terminated: 0, failed: 1, misuse: 2, boundOver: 3, nameTaken: 4 } as const;

/** Written to stdout once the name is taken. */
export const upLine = "up\n";
