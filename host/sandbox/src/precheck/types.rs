//! How deeply types are written inside one another.
//!
//! The parser reads a type in a type by calling itself, with three bytes a level and no bound: a
//! megabyte of them would overflow the stack of the process. So every type section goes through here
//! first, with a count for a stack.

use wasmparser::{
    BinaryReader, ComponentExternName, ComponentImport, ComponentType, ComponentTypeRef,
    InstanceTypeDeclaration, Result,
};

/// Types that hold declarations of their own, which may be types again.
const COMPONENT: u8 = 0x41;
const INSTANCE: u8 = 0x42;

/// The declarations in them.
const DECLARES_TYPE: u8 = 0x01;
const DECLARES_IMPORT: u8 = 0x03;
const DECLARES_EXPORT: u8 = 0x04;

/// What a type section holds.
pub(super) struct Written {
    /// Types and declarations in all.
    pub(super) items: u64,
    /// Whether it goes deeper than the bound; reading has ended there.
    pub(super) too_deep: bool,
}

/// Reads a whole type section.
pub(super) fn read(mut reader: BinaryReader<'_>, bound: usize) -> Result<Written> {
    let mut items = 0;
    // How many declarations are still to come, for each type that is open; the section is outermost.
    let mut open = vec![reader.read_var_u32()?];
    while let Some(left) = open.last_mut() {
        if *left == 0 {
            open.pop();
            continue;
        }
        *left -= 1;
        items += 1;
        if open.len() > 1 && !declares_type(&mut reader)? {
            continue;
        }
        match peek(&reader)? {
            COMPONENT | INSTANCE => {
                reader.read_u8()?;
                open.push(reader.read_var_u32()?);
                if open.len() > bound {
                    return Ok(Written {
                        items,
                        too_deep: true,
                    });
                }
            }
            _ => drop(reader.read::<ComponentType<'_>>()?),
        }
    }
    Ok(Written {
        items,
        too_deep: false,
    })
}

/// Reads one declaration, or only its first byte if what follows is a type.
fn declares_type(reader: &mut BinaryReader<'_>) -> Result<bool> {
    match peek(reader)? {
        DECLARES_TYPE => {
            reader.read_u8()?;
            return Ok(true);
        }
        DECLARES_IMPORT => {
            reader.read_u8()?;
            reader.read::<ComponentImport<'_>>()?;
        }
        DECLARES_EXPORT => {
            reader.read_u8()?;
            reader.read::<ComponentExternName<'_>>()?;
            reader.read::<ComponentTypeRef>()?;
        }
        _ => drop(reader.read::<InstanceTypeDeclaration<'_>>()?),
    }
    Ok(false)
}

fn peek(reader: &BinaryReader<'_>) -> Result<u8> {
    reader.clone().read_u8()
}
