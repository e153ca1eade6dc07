/*
 * Limits of the images that the service converts: interface.md, POST /api/upload/image. No imports, because the account
 * pages include this file.
 */

export const imageTypes = ['image/jpeg', 'image/png'] as const;
export type ImageType = (typeof imageTypes)[number];

export const MAX_IMAGE_MEGABYTES = 5;
export const MAX_IMAGE_BYTES = MAX_IMAGE_MEGABYTES * 1024 * 1024;

export const MAX_MEGAPIXELS = 24;
export const MAX_PIXELS = MAX_MEGAPIXELS * 1e6;

/** What an image is for, and the longest side of the stored picture: twice what screens show, for dense ones. */
export const pictureSides = { avatar: 512, post: 1600 } as const;
export type ImagePurpose = keyof typeof pictureSides;
export const imagePurposes = Object.keys(pictureSides) as ImagePurpose[];

/** The most smaller pictures of an image. */
export const MAX_VARIANTS = 8;

export const imageTooLarge = `The image is larger than ${MAX_IMAGE_MEGABYTES} MB`;
