import sharp from 'sharp';
sharp.cache(false);
const mk=(c)=>sharp({create:{width:60,height:40,channels:4,background:c}}).png().toBuffer();
const a=await mk('red'),b=await mk('blue');
const anim=await sharp([a,b],{join:{animated:true}}).webp({delay:[100,100],loop:0}).toBuffer();
console.log((await sharp(anim).metadata()), anim.length);
let pass=[];for(let i=1;i<anim.length;i++){try{await sharp(anim.subarray(0,i),{failOn:'error'}).extractChannel(0).raw().toBuffer();pass.push(i-anim.length)}catch{}}
console.log('anim cut passes',pass.join(' '));
const gm = await sharp(a).removeAlpha().jpeg().withGainMap?.().toBuffer().catch(e=>e.message); console.log('gm',gm);
