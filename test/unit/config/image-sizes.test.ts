import { expect, test } from 'vitest';
import { parseConfig } from '../../../server/config/index.ts';

const sizesOf = (text: string) => parseConfig({ IMAGE_SIZES: text }).uploads.imageSizes;

test.each([
  ['', { avatar: [64, 256], post: [320, 640, 1280] }],
  ['off', { avatar: [], post: [] }],
  ['post:640', { avatar: [], post: [640] }],
  [' post : 640, 320 ,640;avatar:16,511', { avatar: [16, 511], post: [320, 640] }],
  ['post:1599', { avatar: [], post: [1599] }],
])('IMAGE_SIZES=%j', (text, sizes) => {
  expect(sizesOf(text)).toEqual(sizes);
});

test.each([
  ['640', /^ {2}IMAGE_SIZES must be off, or widths like avatar:64,256;post:320,640,1280$/m],
  ['post:', /must be off, or widths like/],
  ['post:640;', /must be off, or widths like/],
  ['post:6.4', /must be off, or widths like/],
  ['post:-1', /must be off, or widths like/],
  ['banner:640', /has banner, which is none of avatar, post/],
  ['constructor:640', /has constructor, which is none of/],
  ['post:320;post:640', /has post twice/],
  ['post:1600', /must have widths between 16 and 1599 for post: the stored picture has 1600/],
  ['avatar:512', /must have widths between 16 and 511 for avatar/],
  ['post:15', /between 16 and 1599/],
  ['post:20,30,40,50,60,70,80,90,100', /has more than 8 widths for post/],
])('IMAGE_SIZES=%j is refused', (text, message) => {
  expect(() => sizesOf(text)).toThrow(message);
});
