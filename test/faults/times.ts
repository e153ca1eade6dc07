/** FAULT_FACTOR=0.25 makes a quarter of the rounds and crashes; CI does so. The default is all that checks.md asks for. */
const factor = Number(process.env['FAULT_FACTOR'] ?? 1);

/** How often a race is run, or a crash repeated. */
export const times = (all: number): number => Math.ceil(all * factor);
