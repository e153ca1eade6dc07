import { PortableMigration } from './portable.ts';

/** The id of an upload that is sent in parts: see entities/upload.ts. */
export class MultipartUploads extends PortableMigration {
  override async up(): Promise<void> {
    await this.addColumns('uploads', { multipart_id: `varchar(1024) ${this.key}` });
  }

  override async down(): Promise<void> {
    await this.dropColumns('uploads', ['multipart_id']);
  }
}
