import { PortableMigration } from './portable.ts';

/** The number of marks in the cookies of a user's devices; null counts as 0. */
export class DeviceMarks extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('users', { device_marks: 'int' });
  }

  override async down(): Promise<void> {
    await this.dropColumns('users', ['device_marks']);
  }
}
