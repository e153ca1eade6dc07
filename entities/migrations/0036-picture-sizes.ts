import { PortableMigration } from './portable.ts';

/**
 * The sizes of pictures. `upload_variants` has a row for each object that may exist beside the one of its upload. If the
 * version before, which does not know them, deletes the upload, `upload_key` becomes null: a job then deletes the object.
 */
export class PictureSizes extends PortableMigration {
  override async up(): Promise<void> {
    const { key } = this;
    await this.addColumns('uploads', {
      width: 'int',
      height: 'int',
      placeholder: `varchar(40) ${key}`,
      variants: `varchar(255) ${key}`,
      variants_size: 'bigint not null default 0',
      variants_for: `varchar(64) ${key}`,
      variants_until: 'bigint',
    });
    await this.createIndex('uploads', 'uploads_variants', { column: 'purpose, variants_for' });
    await this.addColumns('users', { avatar_variants: `varchar(320) ${key}` });
    this.createTable(
      'upload_variants',
      [
        `object_key varchar(72) ${key} not null primary key`,
        `upload_key varchar(64) ${key}`,
        'constraint upload_variants_upload foreign key (upload_key) references uploads (object_key) on delete set null',
      ],
      { upload_variants_upload: 'upload_key' },
    );
  }

  override async down(): Promise<void> {
    this.addSql('drop table if exists upload_variants');
    this.dropIndex('uploads', 'uploads_variants');
    await this.dropColumns('users', ['avatar_variants']);
    await this.dropColumns('uploads', [
      'width',
      'height',
      'placeholder',
      'variants',
      'variants_size',
      'variants_for',
      'variants_until',
    ]);
  }
}
