import { PortableMigration } from './portable.ts';

/** The valid epoch of the marks in the cookies of a user's devices: null until the first login. */
export class KnownDevices extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('users', { device_epoch: 'int' });
  }

  override async down(): Promise<void> {
    await this.dropColumns('users', ['device_epoch']);
  }
}
