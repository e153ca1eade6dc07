// Preloaded into the service (`NODE_OPTIONS=--import=…`): its clock is CLOCK_OFFSET_MS ahead of the machine's, and
// CLOCK_JUMP_MS further with each SIGUSR2.
let offset = Number(process.env['CLOCK_OFFSET_MS']);
process.on('SIGUSR2', () => {
  offset += Number(process.env['CLOCK_JUMP_MS']);
});
const RealDate = Date;

class SkewedDate extends RealDate {
  constructor(...given: unknown[]) {
    super(...((given.length === 0 ? [RealDate.now() + offset] : given) as [number]));
  }
  static override now(): number {
    return RealDate.now() + offset;
  }
}
globalThis.Date = SkewedDate as DateConstructor;
